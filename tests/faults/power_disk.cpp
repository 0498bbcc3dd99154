#include "faults/power_disk.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace txinbox::test {
namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;  // clang 14 does not deduce it

}  // namespace

/// Reads the real file when the path is used for the first time.
void PowerDisk::look_up(const std::string& path) {
  if (now_.contains(path)) return;
  Handle file;
  if (std::filesystem::exists(path)) {
    std::ifstream real(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(real), {}};
    file = std::make_shared<File>(File{bytes, bytes});
  }
  now_[path] = on_disk_[path] = file;
}

bool PowerDisk::exists(const std::string& path) {
  look_up(path);
  return now_[path] != nullptr;
}

PowerDisk::Handle PowerDisk::open(const std::string& path) {
  look_up(path);
  Handle& file = now_[path];
  if (!file) {
    file = std::make_shared<File>();
    pending_.emplace_back(Name{path, file});
    ++version_;
  }
  return file;
}

void PowerDisk::remove(const std::string& path) {
  now_[path] = nullptr;
  pending_.emplace_back(Name{path, nullptr});
  ++version_;
}

void PowerDisk::apply(const Write& write, std::string& bytes) {
  bytes.resize(std::max(bytes.size(), write.offset + write.bytes.size()));
  bytes.replace(write.offset, write.bytes.size(), write.bytes);
}

void PowerDisk::write(const Handle& file, std::string_view bytes, std::size_t offset) {
  const Write write{file, offset, std::string(bytes)};
  apply(write, file->now);
  pending_.emplace_back(write);
  ++version_;
}

void PowerDisk::truncate(const Handle& file, std::size_t size) {
  file->now.resize(size);
  pending_.emplace_back(Truncate{file, size});
  ++version_;
}

void PowerDisk::apply_to_disk(const Change& change) {
  std::visit(Overloaded{
                 [](const Write& write) { apply(write, write.file->on_disk); },
                 [](const Truncate& truncate) { truncate.file->on_disk.resize(truncate.size); },
                 [this](const Name& name) { on_disk_[name.path] = name.file; },
             },
             change);
}

void PowerDisk::sync(const Handle& file) {
  std::erase_if(pending_, [&](const Change& change) {
    const auto* write = std::get_if<Write>(&change);
    const auto* truncate = std::get_if<Truncate>(&change);
    return (write != nullptr && write->file == file) || (truncate != nullptr && truncate->file == file);
  });
  file->on_disk = file->now;
  ++version_;
}

void PowerDisk::sync_names() {
  std::erase_if(pending_, [](const Change& change) { return std::holds_alternative<Name>(change); });
  on_disk_ = now_;
  ++version_;
}

/// Splits a change at the ends of sectors.
std::vector<PowerDisk::Change> PowerDisk::pieces_of(const Change& change) {
  const auto* write = std::get_if<Write>(&change);
  if (write == nullptr) return {change};
  std::vector<Change> pieces;
  for (std::size_t at = 0; at < write->bytes.size();) {
    const std::size_t offset = write->offset + at;
    const std::size_t size = std::min(sector - offset % sector, write->bytes.size() - at);
    pieces.emplace_back(Write{write->file, offset, write->bytes.substr(at, size)});
    at += size;
  }
  return pieces;
}

std::size_t PowerDisk::pieces_at_risk() const {
  std::size_t pieces = 0;
  for (const Change& change : pending_) pieces += pieces_of(change).size();
  return pieces;
}

void PowerDisk::cut(const std::function<Fate(std::size_t piece)>& fate) {
  std::size_t number = 0;
  for (const Change& change : pending_) {
    for (Change& piece : pieces_of(change)) {
      const Fate its = fate(number++);
      if (its == Fate::lost) continue;
      auto* write = std::get_if<Write>(&piece);
      if (its == Fate::scrambled && write != nullptr) {
        for (char& c : write->bytes) c = static_cast<char>(c ^ 0x5a);
      }
      apply_to_disk(piece);
    }
  }
  for (const auto& [path, file] : on_disk_) {
    if (!file) {
      std::filesystem::remove(path);
    } else {
      std::ofstream(path, std::ios::binary | std::ios::trunc) << file->on_disk;
    }
  }
}

}  // namespace txinbox::test
