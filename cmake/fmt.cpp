// fmt 9 compiled once, from the headers of the distribution, which has no static library of it: what fmt's own
// src/format.cc holds, as far as jitconv uses it. Header-only fmt would be compiled again in every file that formats,
// and would more than double the time of a build. A missing instantiation is an error when a program is linked.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {

template auto dragonbox::to_decimal(float x) noexcept -> dragonbox::decimal_fp<float>;
template auto dragonbox::to_decimal(double x) noexcept -> dragonbox::decimal_fp<double>;

template locale_ref::locale_ref(const std::locale& locale);
template auto locale_ref::get<std::locale>() const -> std::locale;
template auto thousands_sep_impl(locale_ref) -> thousands_sep_result<char>;
template auto decimal_point_impl(locale_ref) -> char;

template void buffer<char>::append(const char*, const char*);

}  // namespace detail
FMT_END_NAMESPACE
