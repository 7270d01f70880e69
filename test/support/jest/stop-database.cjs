const removeFolder = require('./remove-folder.cjs');

/** Jest calls what this file exports after the tests. */
module.exports = async () => {
  await globalThis.slipwayTestServer?.stop();
  globalThis.slipwayTestServer = undefined;
  await removeFolder();
};
