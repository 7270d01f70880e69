const makeFolder = require('./make-folder.cjs');

/** Jest calls what this file exports once, before the tests that need a database. */
module.exports = async () => {
  await makeFolder();
  const { startTestServer } = await import('../test-server.ts');
  globalThis.slipwayTestServer ??= await startTestServer();
};
