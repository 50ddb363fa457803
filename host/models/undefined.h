// What -fsanitize=undefined calls: prints the operands and hands them to the engine. Part of every kernel's prelude.
#pragma once

// As the compilers lay them out for their own library.
struct jitconv_ub_type {
  unsigned short kind;  // 0: an integer
  unsigned short info;  // of an integer: log2(bits) * 2 + is_signed
  char name[1];
};
struct jitconv_ub_data {
  const char* file;
  unsigned line, column;
  const jitconv_ub_type* type;        // of the operation, the left operand or the array
  const jitconv_ub_type* other_type;  // of the right operand or the index, where they differ
};

struct jitconv_text {
  char at[160];
  unsigned length;
};

JITCONV_HOOK void jitconv_add_text(jitconv_text* text, const char* more) {
  while (*more != 0 && text->length + 1 < sizeof(text->at)) text->at[text->length++] = *more++;
  text->at[text->length] = 0;
}

// An operand of up to 64 bits is passed by value, a longer one by address.
JITCONV_HOOK void jitconv_add_value(jitconv_text* text, const jitconv_ub_type* type, unsigned long value) {
  const unsigned bits = 1u << (type->info >> 1);
  if (type->kind != 0 || bits > 64) return jitconv_add_text(text, "?");
  const bool is_signed = (type->info & 1) != 0;
  if (bits < 64) value &= (1ul << bits) - 1;
  if (is_signed && (value >> (bits - 1)) != 0) {
    jitconv_add_text(text, "-");
    value = bits < 64 ? (1ul << bits) - value : -value;
  }
  char digits[24];
  unsigned first = sizeof(digits) - 1;
  digits[first] = 0;
  do {
    digits[--first] = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  jitconv_add_text(text, digits + first);
}

// "signed overflow in 2147483647 + 1"
JITCONV_HOOK void jitconv_undefined(const char* what, const jitconv_ub_type* left_type, unsigned long left,
                                    const char* sign, const jitconv_ub_type* right_type, unsigned long right,
                                    const void* pc) {
  jitconv_text text;
  text.length = 0;
  jitconv_add_text(&text, what);
  if (left_type != nullptr) jitconv_add_value(&text, left_type, left);
  jitconv_add_text(&text, sign);
  if (right_type != nullptr) jitconv_add_value(&text, right_type, right);
  jitconv_api->undefined(text.at, pc);
}

#define JITCONV_OVERFLOW(name, sign)                                                                                   \
  JITCONV_HOOK void __ubsan_handle_##name##_overflow(jitconv_ub_data* data, unsigned long left, unsigned long right) { \
    jitconv_undefined("signed overflow in ", data->type, left, sign, data->type, right, JITCONV_PC);                   \
  }
JITCONV_OVERFLOW(add, " + ")
JITCONV_OVERFLOW(sub, " - ")
JITCONV_OVERFLOW(mul, " * ")
JITCONV_HOOK void __ubsan_handle_negate_overflow(jitconv_ub_data* data, unsigned long value) {
  jitconv_undefined("signed overflow in ", nullptr, 0, "-", data->type, value, JITCONV_PC);
}
JITCONV_HOOK void __ubsan_handle_shift_out_of_bounds(jitconv_ub_data* data, unsigned long left, unsigned long right) {
  jitconv_undefined("shift without a value: ", data->type, left, " by ", data->other_type, right, JITCONV_PC);
}
// Handlers of `bounds` get a type descriptor of the array, which is no integer, first.
JITCONV_HOOK void __ubsan_handle_out_of_bounds(jitconv_ub_data* data, unsigned long index) {
  jitconv_text text;
  text.length = 0;
  jitconv_add_text(&text, "index ");
  jitconv_add_value(&text, data->other_type, index);
  jitconv_add_text(&text, " outside ");
  jitconv_add_text(&text, data->type->name);
  jitconv_api->undefined(text.at, JITCONV_PC);
}
// The CPU would trap where a GPU computes nonsense, so the thread cannot go on: a store to nowhere ends its block. One
// name is for division by zero, which is compiled to have no way back, the other for overflow.
#define JITCONV_DIVISION(name)                                                                               \
  JITCONV_HOOK void name(jitconv_ub_data* data, unsigned long left, unsigned long right) {                   \
    jitconv_undefined("division without a value: ", data->type, left, " / ", data->type, right, JITCONV_PC); \
    jitconv_api->store(nullptr, 1, JITCONV_PC);                                                              \
    __builtin_trap();                                                                                        \
  }
JITCONV_DIVISION(__ubsan_handle_divrem_overflow)
JITCONV_DIVISION(__ubsan_handle_divrem_overflow_abort)
