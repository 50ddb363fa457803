/* Asks the installed library for an output shape, and for an error. */
#include <jitconv/jitconv.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  jitconv_spec spec;
  int64_t shape[4];
  spec.struct_size = sizeof spec;
  if (jitconv_spec_parse("input=8,32,512,512 weight=64,32,5,9 padding=2,4 dilation=2,3", &spec) != JITCONV_OK) return 1;
  if (jitconv_output_shape(&spec, shape) != JITCONV_OK) return 2;
  if (shape[0] != 8 || shape[1] != 64 || shape[2] != 508 || shape[3] != 496) return 3;
  spec.groups = 5;
  if (jitconv_output_shape(&spec, shape) != JITCONV_INVALID_SPEC || strlen(jitconv_last_error()) == 0) return 4;
  printf("jitconv %s\n", jitconv_version());
  return 0;
}
