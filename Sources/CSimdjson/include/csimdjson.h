#pragma once
int csimdjson_version(void);
