#include "cli/consume/input_file.hpp"

#include <array>
#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "console/usage_error.hpp"

namespace txinbox::cli {
namespace {

std::string error_text(int number) { return std::generic_category().message(number); }

}  // namespace

InputFile::InputFile(const std::string& path) {
  if (path.empty() || path == "-") return;
  fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd_ < 0) throw UsageError(fmt::format("{}: {}", path, error_text(errno)));
  owned_ = true;
  struct stat about {};
  if (::fstat(fd_, &about) == 0 && S_ISDIR(about.st_mode)) {
    ::close(fd_);
    throw UsageError(fmt::format("{}: {}", path, error_text(EISDIR)));
  }
}

InputFile::~InputFile() {
  if (owned_) ::close(fd_);
}

unsigned long long size_left(int fd) {
  struct stat about {};
  if (::fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) return 0;
  const off_t at = ::lseek(fd, 0, SEEK_CUR);
  return at < 0 || at > about.st_size ? 0 : static_cast<unsigned long long>(about.st_size - at);
}

std::string read_whole(const std::string& path, std::size_t limit) {
  const InputFile file(path);
  std::string text;
  std::array<char, 65536> buffer{};
  for (;;) {
    const ssize_t size = ::read(file.fd(), buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) throw UsageError(fmt::format("{}: {}", path, error_text(errno)));
    if (size == 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(size));
    if (text.size() > limit) throw UsageError(fmt::format("{}: it has more than {} bytes", path, limit));
  }
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  return text;
}

}  // namespace txinbox::cli
