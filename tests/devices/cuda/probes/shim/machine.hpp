// Stands in for the header's inline PTX (LANESCOPE_MACHINE); included inside of lanescope::machine.
inline Word globaltimer() {
    on_host::pass(on_host::advance_ns);
    return on_host::now_ns / on_host::step_ns * on_host::step_ns;
}
inline unsigned globaltimer_low() { return static_cast<unsigned>(globaltimer()); }
inline Word clock() {
    globaltimer();
    return on_host::now_cycles;
}
inline unsigned clock_low() { return static_cast<unsigned>(clock()); }
inline unsigned sm() {
    return ((blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x) % on_host::sms;
}
inline unsigned cluster_rank() { return blockIdx.x % 2; }
inline Word grid_id() { return 77; }
inline void use(unsigned) { ++on_host::uses; }
