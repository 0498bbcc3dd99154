// Lines and batches that are read from a pipe. The bytes can arrive in pieces of any size. No line may be lost, read
// twice or cut, or get a wrong number.
//
// Input: the size of the pieces and the size of a batch, each a digit on its own line, and then the bytes of the pipe.

#include <algorithm>
#include <vector>

#include <unistd.h>

#include "cli/consume/batch_reader.hpp"
#include "fuzz.hpp"

using namespace txinbox::fuzz;
using namespace txinbox::cli;

namespace {

constexpr std::size_t limit = 64;

struct Read {
  std::string text;
  bool too_long;

  /// Of a line that is too long, the reader returns only the first bytes.
  friend bool operator==(const Read& read, const Read& line) {
    if (read.too_long != line.too_long) return false;
    return read.too_long ? !read.text.empty() && line.text.starts_with(read.text) : read.text == line.text;
  }
};

std::vector<Read> split(std::string_view bytes) {
  std::vector<Read> lines;
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    auto line = bytes.substr(0, end);
    bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (lines.empty() && line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
    lines.push_back({std::string(line), line.size() > limit});
  }
  return lines;
}

bool is_blank(const Read& line) { return !line.too_long && line.text.find_first_not_of(" \t") == std::string::npos; }

// A pipe into which the bytes are written piece by piece.
class Source {
 public:
  explicit Source(std::string_view bytes) : bytes_(bytes) { claim(::pipe(ends_) == 0, "a pipe can be created"); }
  ~Source() {
    ::close(ends_[0]);
    if (ends_[1] >= 0) ::close(ends_[1]);
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  int fd() const { return ends_[0]; }

  // Writes the next piece. Closes the pipe if there is none.
  void send(std::size_t size) {
    const auto piece = bytes_.substr(0, size);
    bytes_.remove_prefix(piece.size());
    if (!piece.empty()) {
      claim(::write(ends_[1], piece.data(), piece.size()) == static_cast<ssize_t>(piece.size()),
            "the pipe accepts a piece");
    } else if (ends_[1] >= 0) {
      ::close(ends_[1]);
      ends_[1] = -1;
    }
  }

 private:
  std::string_view bytes_;
  int ends_[2] = {-1, -1};
};

std::vector<Read> read_lines(std::string_view bytes, std::size_t piece) {
  Source source(bytes);
  LineReader reader(source.fd(), -1, limit);
  std::vector<Read> lines;
  while (true) {
    std::string_view line;
    const auto status = reader.next(line, LineReader::Wait::no);
    if (status == LineReader::Status::end) return lines;
    if (status == LineReader::Status::none) {
      source.send(piece);
      continue;
    }
    claim(status == LineReader::Status::line || status == LineReader::Status::too_long, "reading a pipe gives lines");
    lines.push_back({std::string(line), status == LineReader::Status::too_long});
    claim(reader.number() == lines.size(), "lines are counted");
  }
}

// Every line must be in a batch, or must be an empty line before or after a line of a batch.
void claim_batches_hold(const std::vector<Read>& lines, std::string_view bytes, std::size_t size) {
  const Script script{.statements = {}, .names = {"v"}};
  ConsumeOptions options;
  options.key = "/k";
  options.binds = {"v="};
  const MessageReader messages(options, script, {});

  Source source(bytes);
  source.send(bytes.size());
  source.send(0);
  LineReader reader(source.fd(), -1, limit);
  BatchReader batches(reader, messages, {.lines = size, .bytes = 4 * limit});
  std::size_t done = 0;  // the number of lines that are checked
  Batch batch;
  for (auto status = BatchReader::Status::more; status == BatchReader::Status::more;) {
    status = batches.next(batch);
    claim(batch.lines.size() <= size, "a batch is not larger than its limit");
    claim(batch.messages.size() == batch.values.size(), "a message has its values");
    if (batch.empty_through != 0) {
      while (done < batch.empty_through) claim(is_blank(lines.at(done++)), "only empty lines are skipped");
    }
    std::size_t message = 0;
    for (const auto& line : batch.lines) {
      claim(line.number == done + 1, "no line is lost or doubled");
      const Read& read = lines.at(done++);
      claim(!is_blank(read), "an empty line is not a message");
      txinbox::Message expected;
      Values values;
      const bool is_message = !read.too_long && unless_refused<LineError>([&] {
                                                  messages.read(read.text, expected, values);
                                                  return true;
                                                }).has_value();
      claim(line.is_message() == is_message, "whether a line is a message does not depend on other lines");
      if (is_message) {
        claim(batch.messages.at(message).business_key == expected.business_key, "a message has its line's key");
        claim(std::get<std::string>(batch.values.at(message++).at(0)) == read.text, "a message has its line's values");
      }
      while (done < line.through) claim(is_blank(lines.at(done++)), "only empty lines are skipped");
    }
    claim(message == batch.messages.size(), "each message has a line");
  }
  claim(done == lines.size(), "all lines are read");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Fields fields(data, size);
  const auto number = [&] {
    const auto text = fields.line();
    return text.empty() ? std::size_t{1} : static_cast<std::size_t>(static_cast<unsigned char>(text[0]) % 16 + 1);
  };
  const std::size_t piece = number();
  const std::size_t batch = number();
  const auto bytes = fields.rest();
  if (bytes.size() > 32'768) return 0;  // a larger input may not fit into a pipe
  const auto lines = split(bytes);
  claim(read_lines(bytes, piece) == lines, "the lines are the texts between line feeds");
  claim_batches_hold(lines, bytes, batch);
  return 0;
}
