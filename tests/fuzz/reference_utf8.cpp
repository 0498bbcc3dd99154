#include "reference_utf8.hpp"

#include <string>

#include <iconv.h>

#include "fuzz.hpp"

namespace txinbox::fuzz {
namespace {

class Converter {
 public:
  Converter() : handle_(::iconv_open("UTF-32LE", "UTF-8")) {
    claim(handle_ != reinterpret_cast<iconv_t>(-1), "iconv knows UTF-8");
  }
  ~Converter() { ::iconv_close(handle_); }
  Converter(const Converter&) = delete;
  Converter& operator=(const Converter&) = delete;

  Utf8ByIconv run(std::string_view text) {
    ::iconv(handle_, nullptr, nullptr, nullptr, nullptr);
    std::string input(text);
    std::string output(4 * text.size() + 4, '\0');
    char* in = input.data();
    char* out = output.data();
    std::size_t in_left = input.size();
    std::size_t out_left = output.size();
    ::iconv(handle_, &in, &in_left, &out, &out_left);
    return {text.size() - in_left, (output.size() - out_left) / 4};
  }

 private:
  iconv_t handle_;
};

}  // namespace

Utf8ByIconv read_by_iconv(std::string_view text) {
  static Converter converter;
  return converter.run(text);
}

}  // namespace txinbox::fuzz
