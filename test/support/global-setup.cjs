const { resolveTypescript } = require('./typescript-hooks.cjs');

/** Jest calls what this file exports, before the tests. */
module.exports = async () => {
  resolveTypescript();
  const { startTestServer } = require('./test-server.ts');
  globalThis.slipwayTestServer = await startTestServer();
};
