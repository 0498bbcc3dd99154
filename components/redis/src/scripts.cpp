#include "scripts.hpp"

#include <array>
#include <new>
#include <utility>

#include <openssl/evp.h>

namespace txinbox {
TXINBOX_NAMESPACE_BEGIN
namespace redis {

namespace {

std::string sha1_of(const std::string& text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr) != 1) throw std::bad_alloc();
  constexpr char digits[] = "0123456789abcdef";
  std::string hex;
  for (unsigned i = 0; i < size; ++i) {
    hex += digits[digest.at(i) >> 4U];
    hex += digits[digest.at(i) & 0x0FU];
  }
  return hex;
}

// Numbers of microseconds have 16 digits, which tostring() would round. Redis before 7 hides the code of an error that
// redis.call raises. So the scripts return the errors of redis.pcall. HSET is the only write that a server without
// memory refuses, and each step has only one HSET. So a step is done completely or not at all.
constexpr const char* prelude = R"lua(
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local function digits(number) return string.format('%.0f', number) end
local function write(...)
  local done = redis.pcall('HSET', KEYS[1], ...)
  if type(done) == 'table' then return done end
  done = redis.pcall('PEXPIRE', KEYS[1], ARGV[3])
  if type(done) == 'table' then return done end
end
)lua";

constexpr const char* claim_step = R"lua(
local found = redis.pcall('HMGET', KEYS[1], 'state', 'token', 'fence', 'ends', 'at', 'hash', 'attempts', 'failures', 'stored',
  'result')
if found.err then return found end
local state, token, fence, ends, at, hash, attempts, failures, stored, result = unpack(found)
local ours = token == ARGV[1]
local left = (tonumber(ends) or 0) - now
local age = now - (tonumber(at) or 0)
local over = state == 'consumed' and not ours and tonumber(ARGV[7]) > 0 and age >= ARGV[7] * 1000
if state and not over then
  if state == 'consuming' and ours and left > 0 then
    return {'granted', fence, digits(math.floor(left / 1000)), '0'}
  end
  if hash and hash ~= '' and ARGV[4] ~= '' and hash ~= ARGV[4] then return {'conflict'} end
  if state == 'consumed' then return {'consumed', digits(math.floor(math.max(age, 0) / 1000)), stored, result} end
  if state ~= 'consuming' then return {state} end
  if left > 0 then return {'in_progress', digits(math.ceil(left / 1000))} end
end
local again = state and not over
local next = math.max((tonumber(fence) or 0) + 1, now)
-- A message without content keeps the hash of the first message that the lease was for.
local kept = again and ARGV[4] == '' and hash or ARGV[4]
local failed = write('state', 'consuming', 'token', ARGV[1], 'fence', digits(next), 'ends', digits(now + ARGV[2] * 1000),
  'at', digits(now), 'hash', kept, 'id', ARGV[5], 'owner', ARGV[6],
  'attempts', again and digits((tonumber(attempts) or 0) + 1) or '1', 'failures', again and failures or '0')
if failed then return failed end
return {'granted', digits(next), ARGV[2], again and not ours and ends ~= '0' and '1' or '0'}
)lua";

// The steps of a lease's owner. If the token or the fence is not the current one, the lease is lost.
constexpr const char* holder = R"lua(
local found = redis.pcall('HMGET', KEYS[1], 'state', 'token', 'fence', 'ends', 'failures')
if found.err then return found end
local state, token, fence, ends, failures = unpack(found)
if token ~= ARGV[1] or fence ~= ARGV[2] then return 0 end
)lua";

constexpr const char* renew_step = R"lua(
if state ~= 'consuming' then return 0 end
return write('ends', digits(now + ARGV[4] * 1000)) or 1
)lua";

// If the step is sent again after a lost reply, it finds what the first run has written.
constexpr const char* complete_step = R"lua(
if state == 'consumed' then return 1 end
if state ~= 'consuming' then return 0 end
return write('state', 'consumed', 'ends', '0', 'at', digits(now), 'stored', ARGV[4], 'result', ARGV[5]) or 1
)lua";

constexpr const char* fail_step = R"lua(
if state == 'parked' then return 1 end
if state ~= 'consuming' or ends == '0' then return 0 end
local count = (tonumber(failures) or 0) + ARGV[4]
local most = tonumber(ARGV[6])
local parked = ARGV[4] == '1' and (ARGV[5] == '1' or (most > 0 and count >= most))
return write('state', parked and 'parked' or 'consuming', 'ends', '0', 'at', digits(now), 'failures', digits(count),
  'error', ARGV[7]) or (parked and 1 or 0)
)lua";

}  // namespace

Script::Script(std::string text_) : text(std::move(text_)), sha(sha1_of(text)) {}

const Scripts& Scripts::get() {
  static const Scripts scripts{.claim = Script(std::string(prelude) + claim_step),
                               .renew = Script(std::string(prelude) + holder + renew_step),
                               .complete = Script(std::string(prelude) + holder + complete_step),
                               .fail = Script(std::string(prelude) + holder + fail_step)};
  return scripts;
}

}  // namespace redis
TXINBOX_NAMESPACE_END
}  // namespace txinbox
