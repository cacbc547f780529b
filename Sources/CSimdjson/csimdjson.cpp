#include <simdjson.h>
extern "C" {
#include "csimdjson.h"
int csimdjson_version(void) { return simdjson::SIMDJSON_VERSION_MAJOR; }
}
