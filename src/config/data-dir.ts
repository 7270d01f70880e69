import { errorMessage } from '@slipway/common/errors/error-message.js';
import { makePrivateFolder } from '@slipway/common/private-folder.js';
import { ConfigError } from '@slipway/common/errors/config.error.js';

/**
 * Makes the folder of DATA_DIR, for its owner alone, and those above it.
 *
 * @returns whether it was made now
 * @throws ConfigError where it cannot be made or written, in one line
 */
export async function makeDataDir(dataDir: string): Promise<boolean> {
  return await makePrivateFolder(dataDir).catch((error: unknown) => {
    throw new ConfigError(`DATA_DIR: ${errorMessage(error)}`, { cause: error });
  });
}
