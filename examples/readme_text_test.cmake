# Script mode: cmake -DREADME=README.md -DPROGRAM=readme.cpp -P readme_text_test.cmake
# Fails unless the a C++ block of README is the text of PROGRAM, and the program stays as short as promised.
file(READ ${README} readme)
file(READ ${PROGRAM} program)
string(FIND "${readme}" "```cpp\n${program}```\n" at)
if(at EQUAL -1)
  message(FATAL_ERROR "no C++ block of ${README} is the text of ${PROGRAM}: copy the file into the block")
endif()
file(STRINGS ${PROGRAM} lines)
list(LENGTH lines count)
if(count GREATER 25)
  message(FATAL_ERROR "${PROGRAM} has ${count} lines; README promises at most 25")
endif()
