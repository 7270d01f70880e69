import { errorMessage } from '@slipway/common/errors/error-message.js';

/** The message has one line for each variable, which it names. */
export class ConfigError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'ConfigError';
  }
}

/** Reads what a variable names. @throws ConfigError with the variable, the place and what is wrong, in one line */
export async function readConfigured<T>(variable: string, place: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    const [reason] = errorMessage(error).split('\n', 1);
    throw new ConfigError(`${variable}: ${place}: ${reason}`, { cause: error });
  }
}
