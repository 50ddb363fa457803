# Script mode: cmake -DREADME=README.md -DPROGRAM=convolve.cpp -P readme_text_test.cmake
# Fails unless a C++ block of README is the text of PROGRAM, and the program is short enough for a front page.
cmake_minimum_required(VERSION 3.22)

file(READ ${README} readme)
file(READ ${PROGRAM} program)
string(FIND "${readme}" "```cpp\n${program}```\n" at)
if(at EQUAL -1)
  message(FATAL_ERROR "no C++ block of ${README} is the text of ${PROGRAM}: copy the file into the block")
endif()
string(REGEX REPLACE "[^\n]" "" line_ends "${program}")
string(LENGTH "${line_ends}" count)
if(count GREATER 55)
  message(FATAL_ERROR "${PROGRAM} has ${count} lines; README has room for 55")
endif()
