// Tracepoints of the program beside: fields of all kinds that lttng-ust knows.
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER program

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./program_tp.h"

#if !defined(PROGRAM_TP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define PROGRAM_TP_H

#include <lttng/tracepoint.h>
#include <stdint.h>

LTTNG_UST_TRACEPOINT_ENUM(program, color,
    LTTNG_UST_TP_ENUM_VALUES(
        lttng_ust_field_enum_value("RED", 0)
        lttng_ust_field_enum_auto("GREEN")
        lttng_ust_field_enum_range("BLUE", 5, 9)
        lttng_ust_field_enum_value("a word, \"quoted\"", 20)))

LTTNG_UST_TRACEPOINT_EVENT(program, numbers,
    LTTNG_UST_TP_ARGS(int, n, uint64_t, big, float, f, double, d),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(int, n, n)
        lttng_ust_field_integer(int8_t, small, (int8_t)n)
        lttng_ust_field_integer_hex(uint64_t, big, big)
        lttng_ust_field_integer_network(uint32_t, network, (uint32_t)n)
        lttng_ust_field_integer_network_hex(uint16_t, port, (uint16_t)n)
        lttng_ust_field_float(float, f, f)
        lttng_ust_field_float(double, d, d)
        lttng_ust_field_enum(program, color, int, shade, n % 30)))

LTTNG_UST_TRACEPOINT_EVENT(program, texts,
    LTTNG_UST_TP_ARGS(const char *, text, unsigned, length, const uint16_t *, many),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_string(text, text)
        lttng_ust_field_array_text(char, four, text, 4)
        lttng_ust_field_array(uint16_t, two, many, 2)
        lttng_ust_field_sequence_text(char, part, text, unsigned, length)
        lttng_ust_field_sequence_hex(uint16_t, many, many, unsigned, length)
        lttng_ust_field_array_network(uint16_t, net, many, 2)
        lttng_ust_field_integer(unsigned, length, length)))

LTTNG_UST_TRACEPOINT_EVENT_CLASS(program, call, LTTNG_UST_TP_ARGS(int, n),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, n, n)))
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(program, call, program, work_entry, LTTNG_UST_TP_ARGS(int, n))
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(program, call, program, work_exit, LTTNG_UST_TP_ARGS(int, n))
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(program, call, program, step_begin, LTTNG_UST_TP_ARGS(int, n))
LTTNG_UST_TRACEPOINT_EVENT_INSTANCE(program, call, program, step_end, LTTNG_UST_TP_ARGS(int, n))
LTTNG_UST_TRACEPOINT_EVENT(program, nothing, LTTNG_UST_TP_ARGS(), LTTNG_UST_TP_FIELDS())

#endif

#include <lttng/tracepoint-event.h>
