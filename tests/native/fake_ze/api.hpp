// The entry points, one function each, in a namespace of ours: nothing here can be mistaken for the loader's exports.
#pragma once

#include <level_zero/ze_api.h>

#include "api_versions.hpp"
#include "stats.hpp"

namespace fake_ze {

// HERE: the same signature as in Debian's headers.
#define ENTRY(table, function, minor)
#define HERE(table, function, minor) decltype(::function) function;
#define NEWER(table, function, minor)
#include "functions.def"

}  // namespace fake_ze
