#include "csimdjson.h"

#include <charconv>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include <simdjson.h>

// simdjson's `dom::parser` hides the structural index, which is the only place where byte offsets survive a parse.
// So the parts are owned one by one here: an implementation (index), a document (tape, strings) and a padded copy.
struct csimdjson_parser {
    size_t max_bytes;
    size_t max_depth;
    size_t capacity = 0;
    std::unique_ptr<simdjson::internal::dom_parser_implementation> implementation;
    simdjson::dom::document document;
    std::unique_ptr<uint8_t[]> padded;
    std::unique_ptr<uint32_t[]> offsets;
    size_t offsets_capacity = 0;
    bool offsets_known = false;
};

namespace {

using simdjson::error_code;

csimdjson_status status_of(error_code code) {
    switch (code) {
    case simdjson::SUCCESS: return CSIMDJSON_OK;
    case simdjson::EMPTY: return CSIMDJSON_EMPTY;
    case simdjson::CAPACITY: return CSIMDJSON_TOO_LONG;
    case simdjson::DEPTH_ERROR: return CSIMDJSON_TOO_DEEP;
    case simdjson::MEMALLOC: return CSIMDJSON_NO_MEMORY;
    case simdjson::UTF8_ERROR: return CSIMDJSON_NOT_UTF8;
    case simdjson::STRING_ERROR:
    case simdjson::UNESCAPED_CHARS: return CSIMDJSON_BAD_STRING;
    case simdjson::UNCLOSED_STRING: return CSIMDJSON_UNCLOSED_STRING;
    case simdjson::NUMBER_ERROR: return CSIMDJSON_BAD_NUMBER;
    default: return CSIMDJSON_BAD_STRUCTURE;
    }
}

// Grows all buffers to hold `length` bytes of input. They never shrink: `max_bytes` bounds them.
csimdjson_status reserve(csimdjson_parser &parser, size_t length) {
    if (length <= parser.capacity) { return CSIMDJSON_OK; }
    size_t capacity = parser.capacity ? parser.capacity : 4096;
    while (capacity < length) { capacity *= 2; }
    if (capacity > parser.max_bytes) { capacity = parser.max_bytes; }
    parser.capacity = 0;
    parser.padded.reset(new (std::nothrow) uint8_t[capacity + simdjson::SIMDJSON_PADDING]);
    if (!parser.padded) { return CSIMDJSON_NO_MEMORY; }
    if (parser.document.allocate(capacity)) { return CSIMDJSON_NO_MEMORY; }
    if (parser.implementation) {
        if (parser.implementation->set_capacity(capacity)) { return CSIMDJSON_NO_MEMORY; }
    } else {
        // simdjson refuses at the depth it is given, so one more than what may be open.
        auto error = simdjson::get_active_implementation()->create_dom_parser_implementation(
            capacity, parser.max_depth + 1, parser.implementation);
        if (error) { return CSIMDJSON_NO_MEMORY; }
    }
    parser.capacity = capacity;
    return CSIMDJSON_OK;
}

bool is_digit(uint8_t c) { return c >= '0' && c <= '9'; }

// One past the number that begins at `p` (RFC 8259 section 6), or null where it is none.
const uint8_t *number_end(const uint8_t *p, bool &integer) {
    integer = true;
    if (*p == '-') { p++; }
    if (!is_digit(*p)) { return nullptr; }
    if (*p == '0' && is_digit(p[1])) { return nullptr; }
    while (is_digit(*p)) { p++; }
    if (*p == '.') {
        integer = false;
        p++;
        if (!is_digit(*p)) { return nullptr; }
        while (is_digit(*p)) { p++; }
    }
    if (*p == 'e' || *p == 'E') {
        integer = false;
        p++;
        if (*p == '+' || *p == '-') { p++; }
        if (!is_digit(*p)) { return nullptr; }
        while (is_digit(*p)) { p++; }
    }
    switch (*p) {
    case ',': case ']': case '}': case ' ': case '\t': case '\r': case '\n': case 0: return p;
    default: return nullptr;
    }
}

bool fits(const uint8_t *begin, const uint8_t *end, bool integer) {
    auto from = reinterpret_cast<const char *>(begin);
    auto to = reinterpret_cast<const char *>(end);
    if (!integer) {
        double value;
        return std::from_chars(from, to, value).ec == std::errc();
    }
    if (*from == '-') {
        int64_t value;
        return std::from_chars(from, to, value).ec == std::errc();
    }
    uint64_t value;
    return std::from_chars(from, to, value).ec == std::errc();
}

// simdjson refuses a document for a number beyond 64 bits, JSON does not. Such numbers are replaced in the padded copy
// by a fraction (which no integer field accepts); their text is read from the input. False: a number is truly broken.
bool replace_huge_numbers(csimdjson_parser &parser) {
    const auto &implementation = *parser.implementation;
    bool any = false;
    for (uint32_t i = 0; i < implementation.n_structural_indexes; i++) {
        uint8_t *begin = parser.padded.get() + implementation.structural_indexes[i];
        if (*begin != '-' && !is_digit(*begin)) { continue; }
        bool integer;
        const uint8_t *end = number_end(begin, integer);
        if (!end) { return false; }
        if (fits(begin, end, integer)) { continue; }
        size_t length = size_t(end - begin);
        if (length < 3) { return false; }
        memset(begin, ' ', length);
        memcpy(begin, "0e0", 3);
        any = true;
    }
    return any;
}

// Every structural character that is no comma and no colon is one element of the tape, in the same order.
void find_offsets(csimdjson_parser &parser) {
    const uint64_t *tape = parser.document.tape.get();
    size_t words = size_t(tape[0] & simdjson::internal::JSON_VALUE_MASK);
    if (parser.offsets_capacity < words) {
        parser.offsets.reset(new (std::nothrow) uint32_t[words]);
        parser.offsets_capacity = parser.offsets ? words : 0;
        if (!parser.offsets) { return; }
    }
    memset(parser.offsets.get(), 0, words * sizeof(uint32_t));
    size_t word = 1;
    for (uint32_t i = 0; i < parser.implementation->n_structural_indexes && word < words; i++) {
        uint32_t offset = parser.implementation->structural_indexes[i];
        uint8_t c = parser.padded[offset];
        if (c == ',' || c == ':') { continue; }
        parser.offsets[word] = offset;
        auto type = uint8_t(tape[word] >> 56);
        word += type == 'l' || type == 'u' || type == 'd' ? 2 : 1;
    }
    parser.offsets_known = true;
}

}  // namespace

extern "C" {

csimdjson_parser *csimdjson_create(size_t max_bytes, size_t max_depth) {
    auto parser = new (std::nothrow) csimdjson_parser();
    if (!parser) { return nullptr; }
    parser->max_bytes = max_bytes;
    parser->max_depth = max_depth;
    return parser;
}

void csimdjson_destroy(csimdjson_parser *parser) { delete parser; }

csimdjson_status csimdjson_parse(csimdjson_parser *parser, const void *bytes, size_t length, csimdjson_tape *result) {
    parser->offsets_known = false;
    if (length == 0) { return CSIMDJSON_EMPTY; }
    if (length > parser->max_bytes) { return CSIMDJSON_TOO_LONG; }
    csimdjson_status reserved = reserve(*parser, length);
    if (reserved != CSIMDJSON_OK) { return reserved; }
    memcpy(parser->padded.get(), bytes, length);
    // The scanners above may read one byte past a number at the very end.
    memset(parser->padded.get() + length, 0, simdjson::SIMDJSON_PADDING);
    error_code code = parser->implementation->parse(parser->padded.get(), length, parser->document);
    if (code == simdjson::NUMBER_ERROR && replace_huge_numbers(*parser)) {
        code = parser->implementation->parse(parser->padded.get(), length, parser->document);
    }
    if (code) { return status_of(code); }
    result->tape = parser->document.tape.get();
    result->strings = parser->document.string_buf.get();
    return CSIMDJSON_OK;
}

size_t csimdjson_offset(csimdjson_parser *parser, size_t tape_index) {
    if (!parser->offsets_known) { find_offsets(*parser); }
    if (!parser->offsets_known || tape_index >= parser->offsets_capacity) { return 0; }
    return parser->offsets[tape_index];
}

const char *csimdjson_header_version(void) {
    static const std::string version = std::to_string(simdjson::SIMDJSON_VERSION_MAJOR) + "." +
        std::to_string(simdjson::SIMDJSON_VERSION_MINOR) + "." + std::to_string(simdjson::SIMDJSON_VERSION_REVISION);
    return version.c_str();
}
}
