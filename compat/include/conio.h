/* SPDX-License-Identifier: MIT */
#ifndef _INC_CONIO
#define _INC_CONIO

/* Keys of the terminal on standard input, for "press any key". One thread at a time. */

#include "ndvcompat/compiler.h"

/* The next key, without waiting for a line and without echo; EOF at the end of the input. */
NDV_API int _getch(void) NDV_SYM(_getch);
/* Non-zero if _getch would not wait. */
NDV_API int _kbhit(void) NDV_SYM(_kbhit);

#endif
