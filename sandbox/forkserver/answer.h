/* The answer to a command of a session, which is put together piece by piece and sent as one; see answer.c. */
#include <stddef.h>

/* Why a file is left to other programs, NULL where it is not. */
extern const char *refused;

void put_bytes(const char *bytes, size_t size);
__attribute__((format(printf, 1, 2))) void put(const char *format, ...);

/* Put a text as JSON; one that is not in UTF-8 is refused, since nothing would be left of what it says. */
void put_text(const char *text);

/* Put a number, or null where it is infinite or none. */
void put_number(double number);

/* Forget what was put since the last answer. */
void take_back_answer(void);

/* Send what was put to the pipe `answers`. */
void send_answer(int answers);
