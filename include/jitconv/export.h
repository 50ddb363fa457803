// JITCONV_API marks the symbols that libjitconv.so exports. All others have hidden visibility.
#pragma once

#if defined(__GNUC__)
#define JITCONV_API __attribute__((visibility("default")))
#else
#define JITCONV_API
#endif
