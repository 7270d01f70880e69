// Preloaded into an agent server by scripts/code-cache.mjs: when it ends, writes what V8 has compiled of each file of the
// bundle beside that file.
const { renameSync, writeFileSync } = require('node:fs');
const vm = require('node:vm');

const scripts = [];

vm.Script = class extends vm.Script {
  constructor(source, options) {
    // An older cache would be recorded again, with all that has been compiled for other requests.
    super(source, { ...options, cachedData: undefined });
    scripts.push({ file: options.filename, script: this });
  }
};

process.once('exit', () => {
  for (const { file, script } of scripts) {
    // Agent servers that start meanwhile read the whole file, or the one before.
    const written = `${file}.${process.pid}`;
    writeFileSync(written, script.createCachedData());
    renameSync(written, `${file}.cache`);
  }
});
