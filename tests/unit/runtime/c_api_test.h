/* What both files of the test of the C interface share. */
#ifndef JITCONV_C_API_TEST_H
#define JITCONV_C_API_TEST_H

#include <jitconv/jitconv.h>
#include <string.h>

/* Counts and prints what is not so. */
void expect(int condition, const char *what, const char *file, int line);
#define EXPECT(condition) expect((condition) ? 1 : 0, #condition, __FILE__, __LINE__)
#define LAST_ERROR_HAS(part) EXPECT(strstr(jitconv_last_error(), part) != NULL)

jitconv_spec make_spec(void);

/* Of c_api_kernel_test.c. */
void test_prepare(void);
void test_tune(void);
void test_prepare_older_structs(void);
void test_kernel(void);
void test_host(void);
void test_packed_weights(void);
void test_saved(void);

#endif
