// The threads of a block as fibers, for kernels whose threads wait for one another.
#pragma once

#include <ucontext.h>

#include <functional>
#include <memory>
#include <vector>

#include "cuda_on_host.hpp"

namespace on_host {

class Block {
  public:
    Block(dim3 size, const std::function<void()>& body) : body_(body), threads_(size.x * size.y * size.z) {
        current = this;
        for (unsigned n = 0; n < threads_.size(); ++n) {
            Thread& thread = threads_[n];
            thread.index = {n % size.x, n / size.x % size.y, n / size.x / size.y};
            thread.stack = std::make_unique<char[]>(stack_bytes);
            getcontext(&thread.context);
            thread.context.uc_stack.ss_sp = thread.stack.get();
            thread.context.uc_stack.ss_size = stack_bytes;
            thread.context.uc_link = &main_;
            makecontext(&thread.context, [] { current->enter(); }, 0);
        }
    }

    // Let the threads take turns until all have returned. False: they wait for one another for ever.
    bool run() {
        std::size_t left = threads_.size();
        for (std::size_t turns = 0; left > 0; ++turns) {
            if (turns == most_turns) return false;
            for (Thread& thread : threads_) {
                if (thread.done) continue;
                running_ = &thread;
                threadIdx = thread.index;
                swapcontext(&main_, &thread.context);
                left -= thread.done;
            }
        }
        return true;
    }

    void yield() {
        Thread* thread = running_;
        swapcontext(&thread->context, &main_);
    }

    void sync() {
        const auto phase = phase_;
        if (++arrived_ == threads_.size()) {
            arrived_ = 0;
            ++phase_;
        }
        while (phase == phase_) yield();
    }

    static inline Block* current = nullptr;

  private:
    static constexpr std::size_t stack_bytes = 64 * 1024, most_turns = 10'000'000;

    struct Thread {
        ucontext_t context;
        uint3 index;
        std::unique_ptr<char[]> stack;
        bool done = false;
    };

    void enter() {
        Thread* thread = running_;
        body_();
        thread->done = true;
    }

    std::function<void()> body_;
    std::vector<Thread> threads_;
    ucontext_t main_;
    Thread* running_ = nullptr;
    std::size_t arrived_ = 0;
    unsigned phase_ = 0;
};

}  // namespace on_host

inline void __syncthreads() { on_host::Block::current->sync(); }
