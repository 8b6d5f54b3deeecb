/* SPDX-License-Identifier: MIT */
/* WinVerbs on a device, by its ping-pong: with itself in all ways of waiting, with Network Direct and with plain librdmacm in
 * both roles, and with datagrams. */
#include "pingpong.h"
#include "session.h"

ALONE(pingpong_with_itself)
{
    pingpong_pair("wvpingpong", "wvpingpong", "--event", NULL);
    pingpong_pair("wvpingpong", "wvpingpong", "--port", NULL);
    pingpong_pair("wvpingpong", "wvpingpong", "--write", NULL);
    pingpong_pair("wvpingpong", "wvpingpong", "--read", NULL);
}

ALONE(pingpong_with_network_direct)
{
    pingpong_pair("ndpingpong", "wvpingpong", "--send", NULL);
    pingpong_pair("wvpingpong", "ndpingpong", "--write", NULL);
}

ALONE(pingpong_with_librdmacm)
{
    pingpong_pair("rawpingpong", "wvpingpong", "--write", NULL);
    if (!runner_iwarp()) /* siw may never look at the first message of a plain program */
        pingpong_pair("wvpingpong", "rawpingpong", "--send", NULL);
}

ALONE(datagrams)
{
    if (runner_iwarp())
        harness_skip("iWARP has no datagrams");
    pingpong_pair("wvpingpong", "wvpingpong", "--poll", "--ud");
    pingpong_pair("wvpingpong", "wvpingpong", "--event", "--ud");
}

RUNNER_MAIN
