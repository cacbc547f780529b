// Only names the library; the C++ side of it is in CSimdjson.
