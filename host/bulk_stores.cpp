// See bulk_stores.h.
#include "host/bulk_stores.h"

#include <algorithm>
#include <cstring>

namespace jitconv::host {

void BulkStores::start_block() {
  for (Issued& issued : of_thread_) {
    issued.stores.clear();
    issued.closed_groups = 0;
  }
  in_flight_ = 0;
}

void BulkStores::move(const Store& store) {
  if (store.map == nullptr)
    std::memcpy(store.destination, store.source, store.bytes);
  else
    TensorBox::of_store(*store.map, store.destination, store.place).store(store.source, store.destination);
}

void BulkStores::issue(const Store& store, bool early) {
  Issued& issued = of_thread_[store.issuer];
  issued.stores.push_back({store, issued.closed_groups, early, {store.source, store.source + store.bytes}});
  if (early) move(store);
  ++in_flight_;
}

std::vector<BulkStores::Finished> BulkStores::wait(std::uint32_t thread, std::uint32_t groups) {
  std::vector<Finished> finished;
  Issued& issued = of_thread_[thread];
  if (issued.closed_groups <= groups) return finished;
  const std::uint32_t complete = issued.closed_groups - groups;  // groups below this number
  auto end = issued.stores.begin();
  for (; end != issued.stores.end() && end->group < complete; ++end) {
    const Store& store = end->store;
    if (!end->moved) move(store);
    finished.push_back({store, std::nullopt});
    const auto [before, now] = std::mismatch(end->bytes.begin(), end->bytes.end(), store.source);
    if (before != end->bytes.end()) finished.back().change = static_cast<std::uint32_t>(now - store.source);
  }
  in_flight_ -= finished.size();
  issued.stores.erase(issued.stores.begin(), end);
  return finished;
}

const BulkStores::Store* BulkStores::unfinished() const {
  if (in_flight_ == 0) return nullptr;
  for (const Issued& issued : of_thread_)
    if (!issued.stores.empty()) return &issued.stores.front().store;
  return nullptr;
}

}  // namespace jitconv::host
