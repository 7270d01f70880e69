const { resolveTypescript } = require('../../scripts/lib/typescript-hooks.mjs');

/** Jest calls what this file exports, before the tests. */
module.exports = async () => {
  resolveTypescript();
  const { startTestServer } = require('./test-server.ts');
  globalThis.slipwayTestServer = await startTestServer();
};
