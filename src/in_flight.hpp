#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <stop_token>

#include <txinbox/version.hpp>

#include "token.hpp"

namespace txinbox::inline TXINBOX_ABI::detail {

/// The attempts of this process that are counted from their start. A process that dies in one of them
/// leaves its mark in the database; whose fault it was is only known of an attempt that was alone.
class InFlight {
 public:
  /// One attempt's place among them, left when it is destroyed.
  class Place {
   public:
    Place() = default;
    Place(Place&& other) noexcept;
    Place& operator=(Place&& other) noexcept;
    ~Place() { leave(); }

    bool taken() const noexcept { return flight_ != nullptr; }
    void leave() noexcept;

    /// Whether no other is in flight. Until `marked`, none can join.
    bool alone() const noexcept;

    /// The mark of this attempt is written.
    void marked() noexcept;

   private:
    friend class InFlight;
    struct Attempt {
      std::function<void()> on_company;
      bool alone = false;
      bool marked = false;
      bool exclusive = false;
    };
    InFlight* flight_ = nullptr;
    std::list<Attempt>::iterator attempt_;
  };

  static InFlight& of_process();

  /// What this process's marks are known by; another one after a fork.
  const Token& process();

  /// Takes a place. `on_company` writes into the mark of this attempt that it is no longer alone: it is
  /// called, on the thread of the attempt that joins, before that one begins.
  ///
  /// `exclusive`: waits until no other is in flight, and keeps others out; not so inside another attempt on
  /// the same thread, which would wait for itself.
  ///
  /// Errors: `Error` stopped; what another's `on_company` throws, and then no place is taken.
  Place enter(bool exclusive, std::function<void()> on_company, const std::stop_token& stop);

 private:
  using Attempts = std::list<Place::Attempt>;

  bool may_enter(bool exclusive) const;
  void leave(Attempts::iterator) noexcept;

  std::mutex mutex_;
  std::condition_variable_any changed_;
  Attempts attempts_;
  int joining_ = 0;  ///< Those that are telling the others.
  Token process_ = Token::random();
  int process_id_ = 0;
};

}  // namespace txinbox::inline TXINBOX_ABI::detail
