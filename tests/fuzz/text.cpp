// Text from outside. txinbox and iconv must agree on what is UTF-8, keys must be within their limits, and printed text
// must not contain characters that control the terminal or the direction of text.

#include "fuzz.hpp"
#include "reference_utf8.hpp"

#include <txinbox/error.hpp>

#include "console/utf8.hpp"
#include "message/key.hpp"

using namespace txinbox::fuzz;

namespace {

// Characters that change the direction of text, or end its line.
bool holds_direction(std::string_view text) {
  for (const char* mark : {"\u061c", "\u200e", "\u200f", "\u2028", "\u2029", "\u202a", "\u202b", "\u202c", "\u202d",
                           "\u202e", "\u2066", "\u2067", "\u2068", "\u2069"}) {
    if (text.find(mark) != std::string_view::npos) return true;
  }
  return false;
}

bool holds_control(std::string_view text) {
  if (holds_direction(text)) return true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x20 || byte == 0x7F) return true;
    if (byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0) return true;
  }
  return false;
}

// A text with other letters, but with the same length and the same invalid bytes.
std::string with_other_letters(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c > 0) c = 'x';
  }
  return result;
}

// `check` must accept texts of `least` to `most` bytes.
template <class Check>
void claim_limits(std::string_view text, bool is_utf8, std::size_t least, std::size_t most, Check check) {
  const bool good = is_utf8 && text.size() >= least && text.size() <= most && text.find('\0') == std::string_view::npos;
  try {
    check(text);
    claim(good, "an accepted key is valid");
  } catch (const txinbox::Error& error) {
    claim(!good, "a valid key is accepted");
    claim(error.code() == txinbox::ErrorCode::invalid_key, "the error of an invalid key is invalid_key");
    const std::string why = error.what();
    try {
      check(with_other_letters(text));
    } catch (const txinbox::Error& other) {
      claim(other.what() == why, "the text of a refusal does not depend on the letters of the key");
      return;
    }
    claim(false, "a refusal does not depend on the letters of the key");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto reference = read_by_iconv(text);
  const bool is_utf8 = reference.valid_bytes == text.size();

  const auto invalid = txinbox::detail::find_invalid_utf8(text);
  claim((invalid == std::string_view::npos) == is_utf8, "a text is UTF-8 if iconv accepts it, and only then");
  if (is_utf8) {
    claim(txinbox::cli::count_characters(text) == reference.characters, "the number of characters is that of iconv");
  } else {
    claim(invalid == reference.valid_bytes, "the first invalid byte is the one at which iconv stops");
  }

  using namespace txinbox::detail;
  claim_limits(text, is_utf8, 1, 255, [](std::string_view key) { check_business_key(key); });
  claim_limits(text, is_utf8, 1, 64, [](std::string_view name) { check_consumer(name); });
  claim_limits(text, is_utf8, 0, 255,
               [](std::string_view id) { check_message({.business_key = "k", .message_id = std::string(id)}); });

  const std::string printed = txinbox::cli::printable(text);
  claim(is_utf8_by_iconv(printed) && !holds_control(printed), "printed text is UTF-8 without control characters");
  claim((printed == text) == (is_utf8 && !holds_control(text)), "harmless text is printed as it is");
  claim(is_utf8_by_iconv(txinbox::cli::text_or_hex(text)), "stored bytes are shown as UTF-8");
  return 0;
}
