// Lines and batches of a pipe: however the bytes arrive, no line is lost, doubled, cut or renumbered.
//
// Input: two digits, the size of the pieces that arrive and of a batch, a line each; then what the pipe holds.

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

  friend bool operator==(const Read&, const Read&) = default;
};

std::vector<Read> split(std::string_view bytes) {
  std::vector<Read> lines;
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    auto line = bytes.substr(0, end);
    bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (lines.empty() && line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
    if (line.size() > limit) {
      lines.push_back({"", true});
    } else {
      lines.push_back({std::string(line), false});
    }
  }
  return lines;
}

bool is_blank(const Read& line) { return !line.too_long && line.text.find_first_not_of(" \t") == std::string::npos; }

// A pipe into which the bytes come piece by piece.
class Source {
 public:
  explicit Source(std::string_view bytes) : bytes_(bytes) { claim(::pipe(ends_) == 0, "there is a pipe"); }
  ~Source() {
    ::close(ends_[0]);
    if (ends_[1] >= 0) ::close(ends_[1]);
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  int fd() const { return ends_[0]; }

  // At the end the writer goes away.
  void send(std::size_t size) {
    const auto piece = bytes_.substr(0, size);
    bytes_.remove_prefix(piece.size());
    if (!piece.empty()) {
      claim(::write(ends_[1], piece.data(), piece.size()) == static_cast<ssize_t>(piece.size()), "the pipe takes it");
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
    claim(status == LineReader::Status::line || status == LineReader::Status::too_long, "a pipe is read");
    lines.push_back({std::string(line), status == LineReader::Status::too_long});
    claim(reader.number() == lines.size(), "lines are counted");
  }
}

// Every line is in a batch, or an empty one next to them.
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
  std::size_t done = 0;  // lines
  Batch batch;
  for (auto status = BatchReader::Status::more; status == BatchReader::Status::more;) {
    status = batches.next(batch);
    claim(batch.lines.size() <= size, "a batch has its size");
    claim(batch.messages.size() == batch.values.size(), "a message has its values");
    if (batch.empty_through != 0) {
      while (done < batch.empty_through) claim(is_blank(lines.at(done++)), "only empty lines are skipped");
    }
    std::size_t message = 0;
    for (const auto& line : batch.lines) {
      claim(line.number == done + 1, "no line is lost or doubled");
      const Read& read = lines.at(done++);
      claim(!is_blank(read), "an empty line is no message");
      txinbox::Message expected;
      Values values;
      const bool is_message = !read.too_long && unless_refused<LineError>([&] {
                                                  messages.read(read.text, expected, values);
                                                  return true;
                                                }).has_value();
      claim(line.is_message() == is_message, "a line is a message by itself, whatever is around it");
      if (is_message) {
        claim(batch.messages.at(message).business_key == expected.business_key, "a message has its line's key");
        claim(std::get<std::string>(batch.values.at(message++).at(0)) == read.text, "a message has its line's values");
      }
      while (done < line.through) claim(is_blank(lines.at(done++)), "only empty lines are skipped");
    }
    claim(message == batch.messages.size(), "there is no message without a line");
  }
  claim(done == lines.size(), "all lines are told");
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
  if (bytes.size() > 32'768) return 0;  // more than a pipe surely takes at once
  const auto lines = split(bytes);
  claim(read_lines(bytes, piece) == lines, "lines are what stands between line feeds");
  claim_batches_hold(lines, bytes, batch);
  return 0;
}
