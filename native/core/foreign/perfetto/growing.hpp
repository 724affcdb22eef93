// Arrays that grow at their end, as the reader's columns are.
#pragma once
#include "core/wire/growing.hpp"

namespace lanescope::foreign_perfetto {

using lanescope::Growing;

}  // namespace lanescope::foreign_perfetto
