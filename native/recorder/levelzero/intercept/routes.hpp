// Where entry points go on: see `routes` in hooks.hpp.
#pragma once

#include "api/functions.hpp"

namespace lanescope::levelzero {

enum class InterceptPath : u8;

// Chooses the route of a function anew; its target is known now.
void choose_route(InterceptPath way, Function function);
// ... of all functions: `told` has changed.
void choose_routes();
// ... of those that only collect results: some are awaited now, or none any more.
void choose_collecting_routes();
void choose_routes_after_fork();

}  // namespace lanescope::levelzero
