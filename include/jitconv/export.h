// JITCONV_API marks what libjitconv.so exports. Everything else is built with hidden visibility.
#pragma once

#if defined(__GNUC__)
#define JITCONV_API __attribute__((visibility("default")))
#else
#define JITCONV_API
#endif
