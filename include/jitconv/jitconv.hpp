// The whole C++ API.
#pragma once

#include "jitconv/error.h"
#include "jitconv/kernel.h"
#include "jitconv/prepare.h"
#include "jitconv/spec.h"
#include "jitconv/target.h"
#include "jitconv/tune.h"
