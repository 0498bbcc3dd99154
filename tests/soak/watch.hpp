#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "soak/workload.hpp"

namespace txinbox::soak {

/// The resources of the process and of the server at one moment.
struct Sample {
  double memory = 0;     ///< resident, in MiB
  long descriptors = 0;  ///< open files and sockets
  long connections = 0;  ///< on the server; 0 on SQLite
  long statements = 0;   ///< prepared on the server, of one connection at most; 0 on SQLite
};

Sample take_sample(Shared& shared);

long open_descriptors();

/// The samples of a run, and what is computed from them.
class Watch {
 public:
  void add(const Sample& sample) { samples_.push_back(sample); }

  /// The greatest value of each resource.
  Sample greatest() const;

  /// How much the memory grew: the median of the last quarter of the samples minus the median of the first quarter.
  double growth() const;

  double memory_at_begin() const;
  double memory_at_end() const;

 private:
  std::vector<Sample> samples_;
};

}  // namespace txinbox::soak
