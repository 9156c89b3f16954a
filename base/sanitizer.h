// Which sanitizer the program is built with, whatever the compiler: 1 or 0.
//
//   PEN_HAS_ASAN      AddressSanitizer
//   PEN_HAS_TSAN      ThreadSanitizer
//   PEN_IS_SANITIZED  either: code is several times slower, and holds more memory
#ifndef PEN_BASE_SANITIZER_H
#define PEN_BASE_SANITIZER_H

#ifndef __has_feature // clang's; gcc before 14 defines the names below alone
#define __has_feature(name) 0
#define PEN_SANITIZER_LENDS_HAS_FEATURE
#endif

#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define PEN_HAS_ASAN 1
#else
#define PEN_HAS_ASAN 0
#endif

#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define PEN_HAS_TSAN 1
#else
#define PEN_HAS_TSAN 0
#endif

#ifdef PEN_SANITIZER_LENDS_HAS_FEATURE
#undef __has_feature
#undef PEN_SANITIZER_LENDS_HAS_FEATURE
#endif

// Before a function whose callers take turns by locks of a library that TSan does not see.
#define PEN_UNSEEN_BY_TSAN __attribute__((no_sanitize("thread")))

enum { PEN_IS_SANITIZED = PEN_HAS_ASAN || PEN_HAS_TSAN };

#endif // PEN_BASE_SANITIZER_H
