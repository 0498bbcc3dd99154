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
// redis.call raises. So the scripts return the errors of redis.pcall. Each step writes with one SET, which also sets
// the time to live. So a step is done completely or not at all, also if the server has no memory or the user lacks a
// right.
constexpr const char* prelude = R"lua(
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local function digits(number) return string.format('%.0f', number) end
local value = redis.pcall('GET', KEYS[1])
if type(value) == 'table' then return value end
local mark = 'txinbox1 '
local row, result = {}, ''
if value then
  local line_end = string.find(value, '\n', 1, true)
  local ours = line_end and string.sub(value, 1, #mark) == mark
  local read, found = pcall(cjson.decode, ours and string.sub(value, #mark + 1, line_end - 1) or '')
  if not read or type(found) ~= 'table' or type(found.state) ~= 'string' or type(found.token) ~= 'string' or
      not tonumber(found.fence) or not tonumber(found.ends) or not tonumber(found.at) then
    return {err = 'WRONGTYPE the value is not of txinbox'}
  end
  row, result = found, string.sub(value, line_end + 1)
end
local function write()
  local done = redis.pcall('SET', KEYS[1], mark .. cjson.encode(row) .. '\n' .. result, 'PX', ARGV[3])
  if done.err then return done end
end
)lua";

constexpr const char* claim_step = R"lua(
local state = row.state
local ours = row.token == ARGV[1]
local left = (tonumber(row.ends) or 0) - now
local age = now - (tonumber(row.at) or 0)
local over = state == 'consumed' and not ours and tonumber(ARGV[7]) > 0 and age >= ARGV[7] * 1000
if state and not over then
  if state == 'consuming' and ours and left > 0 then
    return {'granted', row.fence, digits(math.floor(left / 1000)), '0'}
  end
  if row.hash ~= '' and ARGV[4] ~= '' and row.hash ~= ARGV[4] then return {'conflict'} end
  if state == 'consumed' then return {'consumed', digits(math.floor(math.max(age, 0) / 1000)), row.stored, result} end
  if state ~= 'consuming' then return {state} end
  if left > 0 then return {'in_progress', digits(math.ceil(left / 1000))} end
end
local again = state and not over
local next = math.max((tonumber(row.fence) or 0) + 1, now)
local taken_over = again and not ours and row.ends ~= '0'
-- A message without content keeps the hash of the first message that the lease was for.
row = {state = 'consuming', token = ARGV[1], fence = digits(next), ends = digits(now + ARGV[2] * 1000), at = digits(now),
  hash = again and ARGV[4] == '' and row.hash or ARGV[4], id = ARGV[5], owner = ARGV[6],
  attempts = again and digits((tonumber(row.attempts) or 0) + 1) or '1', failures = again and row.failures or '0',
  error = again and row.error or nil}
result = ''
return write() or {'granted', digits(next), ARGV[2], taken_over and '1' or '0'}
)lua";

// The steps of a lease's owner. If the token or the fence is not the current one, the lease is lost.
constexpr const char* holder = R"lua(
if row.token ~= ARGV[1] or row.fence ~= ARGV[2] then return 0 end
)lua";

constexpr const char* renew_step = R"lua(
if row.state ~= 'consuming' then return 0 end
row.ends = digits(now + ARGV[4] * 1000)
return write() or 1
)lua";

// If the step is sent again after a lost reply, it finds what the first run has written.
constexpr const char* complete_step = R"lua(
if row.state == 'consumed' then return 1 end
if row.state ~= 'consuming' then return 0 end
row.state, row.ends, row.at, row.stored, result = 'consumed', '0', digits(now), ARGV[4], ARGV[5]
return write() or 1
)lua";

constexpr const char* fail_step = R"lua(
if row.state == 'parked' then return 1 end
if row.state ~= 'consuming' or row.ends == '0' then return 0 end
local count = (tonumber(row.failures) or 0) + ARGV[4]
local most = tonumber(ARGV[6])
local parked = ARGV[4] == '1' and (ARGV[5] == '1' or (most > 0 and count >= most))
row.state, row.ends, row.at, row.failures, row.error = parked and 'parked' or 'consuming', '0', digits(now), digits(count),
  ARGV[7]
return write() or (parked and 1 or 0)
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
