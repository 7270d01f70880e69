const { rm } = require('node:fs/promises');

/** Jest calls what this file exports after the tests. */
module.exports = async () => {
  const folder = process.env.SLIPWAY_TEST_TEMPORARY;
  delete process.env.SLIPWAY_TEST_TEMPORARY;
  if (folder) {
    await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  }
};
