// Something to hear: samples of sixteen bits in base64, as the server sends them.
"use strict";

((lab) => {
  let audio = null;

  // Within a click or the press of a key, or browsers keep silent.
  lab.listen = () => {
    audio ??= new AudioContext();
    audio.resume();
  };

  lab.sound = ({ rate, samples }) => {
    const levels = new Int16Array(Uint8Array.from(atob(samples), (letter) => letter.charCodeAt(0)).buffer);
    audio ??= new AudioContext();
    const buffer = audio.createBuffer(1, levels.length, rate);
    buffer.copyToChannel(Float32Array.from(levels, (level) => (0.5 * level) / 32768), 0);
    const source = new AudioBufferSourceNode(audio, { buffer });
    source.connect(audio.destination);
    source.start();
    lab.root.dataset.played = String(Number(lab.root.dataset.played ?? 0) + 1);
  };
})(window.lemmataLab);
