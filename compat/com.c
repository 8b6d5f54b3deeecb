/* SPDX-License-Identifier: MIT */
#include <objbase.h>

#include <stdbool.h>
#include <wctype.h>

HRESULT WINAPI CoInitialize(LPVOID reserved)
{
    (void)reserved;
    return S_OK;
}

HRESULT WINAPI CoInitializeEx(LPVOID reserved, DWORD mode)
{
    (void)reserved;
    (void)mode;
    return S_OK;
}

VOID WINAPI CoUninitialize(VOID)
{
}

#define GUID_TEXT 39

int WINAPI StringFromGUID2(REFGUID guid, LPWSTR text, int size)
{
    if (!text || size < GUID_TEXT)
        return 0;
    swprintf(text, (size_t)size, L"{%08X-%04X-%04X-%02X%02X-%02X%02X%02X%02X%02X%02X}", guid->Data1, guid->Data2,
             guid->Data3, guid->Data4[0], guid->Data4[1], guid->Data4[2], guid->Data4[3], guid->Data4[4],
             guid->Data4[5], guid->Data4[6], guid->Data4[7]);
    return GUID_TEXT;
}

HRESULT WINAPI CLSIDFromString(LPCWSTR text, LPCLSID guid)
{
    static const char form[] = "{xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx}";
    uint8_t digits[32], bytes[16];
    size_t count = 0;
    bool good = true;

    if (!text || !guid)
        return E_INVALIDARG;
    memset(guid, 0, sizeof(*guid));
    /* The terminator is compared as well. */
    for (size_t i = 0; good && i < sizeof(form); i++) {
        wchar_t c = text[i];

        if (form[i] != 'x')
            good = c == (wchar_t)form[i];
        else if (c >= L'0' && c <= L'9')
            digits[count++] = (uint8_t)(c - L'0');
        else if ((c >= L'a' && c <= L'f') || (c >= L'A' && c <= L'F'))
            digits[count++] = (uint8_t)((c | 0x20) - L'a' + 10);
        else
            good = false;
    }
    if (!good)
        return CO_E_CLASSSTRING;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(digits[2 * i] << 4 | digits[2 * i + 1]);
    guid->Data1 = (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
    guid->Data2 = (uint16_t)(bytes[4] << 8 | bytes[5]);
    guid->Data3 = (uint16_t)(bytes[6] << 8 | bytes[7]);
    memcpy(guid->Data4, bytes + 8, sizeof(guid->Data4));
    return S_OK;
}

HRESULT WINAPI IIDFromString(LPCWSTR text, LPIID guid)
{
    return CLSIDFromString(text, guid);
}

LPVOID WINAPI CoTaskMemAlloc(SIZE_T size)
{
    return malloc(size ? size : 1);
}

VOID WINAPI CoTaskMemFree(LPVOID memory)
{
    free(memory);
}
