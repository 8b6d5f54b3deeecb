/* SPDX-License-Identifier: MIT */
#include <conio.h>

#include <stdio.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

/* Puts the terminal into a mode without lines and echo; false if standard input is none. */
static int keys_enter(struct termios *saved)
{
    struct termios mode;

    if (tcgetattr(STDIN_FILENO, saved) != 0)
        return 0;
    mode = *saved;
    mode.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    mode.c_cc[VMIN] = 1;
    mode.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSANOW, &mode);
    return 1;
}

int _getch(void)
{
    struct termios saved;
    int terminal, key;

    fflush(stdout);
    terminal = keys_enter(&saved);
    /* Not getchar(): it would take the rest of the line with it, which _kbhit could not see. */
    unsigned char byte;
    key = read(STDIN_FILENO, &byte, 1) == 1 ? byte : EOF;
    if (terminal)
        tcsetattr(STDIN_FILENO, TCSANOW, &saved);
    return key;
}

int _kbhit(void)
{
    struct termios saved;
    int terminal = keys_enter(&saved), waiting = 0;

    if (ioctl(STDIN_FILENO, FIONREAD, &waiting) != 0)
        waiting = 0;
    if (terminal)
        tcsetattr(STDIN_FILENO, TCSANOW, &saved);
    return waiting > 0;
}
