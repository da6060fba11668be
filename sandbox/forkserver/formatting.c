/*
 * Takes the place of the C library's register_printf_type(). A library of GDAL's, libquadmath, has printf() know its numbers, which
 * GDAL never prints. From the first registration on, the C library parses each format twice, which took up to a fifth of the time
 * of writing texts. Once this one is refused, libquadmath registers nothing else.
 */
#include <stdarg.h>

#pragma GCC visibility push(default)

int register_printf_type(void (*read_argument)(void *, va_list *))
{
    (void)read_argument;
    return -1;
}

#pragma GCC visibility pop
