/* SPDX-License-Identifier: MIT */
#ifndef _WRL_CLIENT_H_
#define _WRL_CLIENT_H_

/* Microsoft::WRL::ComPtr: owns one reference of an interface. As Microsoft's, but for the parts that deal with Windows
 * Runtime. Thread-safety is that of any object: one thread at a time. Source: win32-surface.md section 3.4. */

#ifndef __cplusplus
#error "<wrl/client.h> is C++"
#endif

extern "C++" {

#include <cstddef>
#include <type_traits>

#include "../unknwn.h"

namespace Microsoft
{
namespace WRL
{

template <typename T> class ComPtr;

namespace Details
{

/* What &pointer gives: converts to where a call may put an interface, after giving up the one that is there. */
template <typename T> class ComPtrRef
{
  public:
    explicit ComPtrRef(ComPtr<T> *pointer) noexcept : pointer_(pointer)
    {
    }
    operator T **() const noexcept
    {
        return pointer_->ReleaseAndGetAddressOf();
    }
    operator void **() const noexcept
    {
        return reinterpret_cast<void **>(pointer_->ReleaseAndGetAddressOf());
    }
    operator ComPtr<T> *() const noexcept
    {
        return pointer_;
    }
    T *operator*() const noexcept
    {
        return pointer_->Get();
    }
    T *const *GetAddressOf() const noexcept
    {
        return pointer_->GetAddressOf();
    }
    T **ReleaseAndGetAddressOf() const noexcept
    {
        return pointer_->ReleaseAndGetAddressOf();
    }

  private:
    ComPtr<T> *pointer_;
};

} // namespace Details

template <typename T> class ComPtr
{
  public:
    typedef T InterfaceType;

    ComPtr() noexcept : pointer_(nullptr)
    {
    }
    ComPtr(std::nullptr_t) noexcept : pointer_(nullptr)
    {
    }
    template <typename U> ComPtr(U *other) noexcept : pointer_(other)
    {
        add();
    }
    ComPtr(const ComPtr &other) noexcept : pointer_(other.pointer_)
    {
        add();
    }
    template <typename U, typename std::enable_if<std::is_convertible<U *, T *>::value, int>::type = 0>
    ComPtr(const ComPtr<U> &other) noexcept : pointer_(other.Get())
    {
        add();
    }
    ComPtr(ComPtr &&other) noexcept : pointer_(other.Detach())
    {
    }
    template <typename U, typename std::enable_if<std::is_convertible<U *, T *>::value, int>::type = 0>
    ComPtr(ComPtr<U> &&other) noexcept : pointer_(other.Detach())
    {
    }
    ~ComPtr() noexcept
    {
        drop();
    }

    ComPtr &operator=(std::nullptr_t) noexcept
    {
        drop();
        return *this;
    }
    ComPtr &operator=(T *other) noexcept
    {
        ComPtr(other).Swap(*this);
        return *this;
    }
    ComPtr &operator=(const ComPtr &other) noexcept
    {
        ComPtr(other).Swap(*this);
        return *this;
    }
    ComPtr &operator=(ComPtr &&other) noexcept
    {
        ComPtr(static_cast<ComPtr &&>(other)).Swap(*this);
        return *this;
    }
    template <typename U> ComPtr &operator=(const ComPtr<U> &other) noexcept
    {
        ComPtr(other).Swap(*this);
        return *this;
    }
    template <typename U> ComPtr &operator=(ComPtr<U> &&other) noexcept
    {
        ComPtr(static_cast<ComPtr<U> &&>(other)).Swap(*this);
        return *this;
    }

    void Swap(ComPtr &other) noexcept
    {
        T *mine = pointer_;

        pointer_ = other.pointer_;
        other.pointer_ = mine;
    }
    void Swap(ComPtr &&other) noexcept
    {
        Swap(other);
    }

    explicit operator bool() const noexcept
    {
        return pointer_ != nullptr;
    }
    T *Get() const noexcept
    {
        return pointer_;
    }
    T *operator->() const noexcept
    {
        return pointer_;
    }
    T &operator*() const noexcept
    {
        return *pointer_;
    }

    Details::ComPtrRef<ComPtr<T>::InterfaceType> operator&() noexcept
    {
        return Details::ComPtrRef<T>(this);
    }
    T *const *GetAddressOf() const noexcept
    {
        return &pointer_;
    }
    /* Gives nothing up: only for a pointer that is empty. */
    T **GetAddressOf() noexcept
    {
        return &pointer_;
    }
    T **ReleaseAndGetAddressOf() noexcept
    {
        drop();
        return &pointer_;
    }

    /* Takes over a reference; hands it out; drops it (the count that is left is the result). */
    void Attach(T *other) noexcept
    {
        T *old = pointer_;

        pointer_ = other;
        if (old)
            old->Release();
    }
    T *Detach() noexcept
    {
        T *mine = pointer_;

        pointer_ = nullptr;
        return mine;
    }
    unsigned long Reset() noexcept
    {
        return drop();
    }

    HRESULT CopyTo(T **to) const noexcept
    {
        if (pointer_)
            pointer_->AddRef();
        *to = pointer_;
        return S_OK;
    }
    HRESULT CopyTo(REFIID id, void **to) const noexcept
    {
        return pointer_->QueryInterface(id, to);
    }
    template <typename U> HRESULT CopyTo(U **to) const noexcept
    {
        return pointer_->QueryInterface(__uuidof(U), reinterpret_cast<void **>(to));
    }
    template <typename U> HRESULT As(ComPtr<U> *to) const noexcept
    {
        return pointer_->QueryInterface(__uuidof(U), reinterpret_cast<void **>(to->ReleaseAndGetAddressOf()));
    }
    template <typename U> HRESULT As(Details::ComPtrRef<U> to) const noexcept
    {
        return pointer_->QueryInterface(__uuidof(U), reinterpret_cast<void **>(to.ReleaseAndGetAddressOf()));
    }
    HRESULT AsIID(REFIID id, ComPtr<IUnknown> *to) const noexcept
    {
        return pointer_->QueryInterface(id, reinterpret_cast<void **>(to->ReleaseAndGetAddressOf()));
    }

  private:
    void add() const noexcept
    {
        if (pointer_)
            pointer_->AddRef();
    }
    /* Emptied first: Release may run code that looks at this object. */
    unsigned long drop() noexcept
    {
        T *mine = Detach();

        return mine ? mine->Release() : 0;
    }

    T *pointer_;
};

template <typename T, typename U> inline bool operator==(const ComPtr<T> &a, const ComPtr<U> &b) noexcept
{
    return a.Get() == b.Get();
}
template <typename T, typename U> inline bool operator!=(const ComPtr<T> &a, const ComPtr<U> &b) noexcept
{
    return a.Get() != b.Get();
}
template <typename T> inline bool operator==(const ComPtr<T> &a, std::nullptr_t) noexcept
{
    return a.Get() == nullptr;
}
template <typename T> inline bool operator!=(const ComPtr<T> &a, std::nullptr_t) noexcept
{
    return a.Get() != nullptr;
}
template <typename T> inline bool operator==(std::nullptr_t, const ComPtr<T> &a) noexcept
{
    return a.Get() == nullptr;
}
template <typename T> inline bool operator!=(std::nullptr_t, const ComPtr<T> &a) noexcept
{
    return a.Get() != nullptr;
}
template <typename T, typename U> inline bool operator<(const ComPtr<T> &a, const ComPtr<U> &b) noexcept
{
    return a.Get() < b.Get();
}

} // namespace WRL
} // namespace Microsoft

/* The arguments of a call that takes an interface id and a place for the interface. */
template <typename T> inline REFGUID ndv_uuid_of_pointer(Microsoft::WRL::Details::ComPtrRef<T>)
{
    return ndv_uuid<T>::get();
}
#undef IID_PPV_ARGS
#define IID_PPV_ARGS(pp) ndv_uuid_of_pointer(pp), ndv_place_of_pointer(pp)
template <typename T> inline void **ndv_place_of_pointer(T **place)
{
    return reinterpret_cast<void **>(place);
}
template <typename T> inline void **ndv_place_of_pointer(Microsoft::WRL::Details::ComPtrRef<T> pointer)
{
    return reinterpret_cast<void **>(pointer.ReleaseAndGetAddressOf());
}

} // extern "C++"

#endif
