import { GitProviderError } from './git-provider.error.js';
import type { ProviderErrorCode } from './git-provider.types.js';

/** Collects why parts of an answer are missing, each reason once, in the order they came. */
export class GapLog {
  private readonly found = new Set<ProviderErrorCode>();

  /**
   * Notes why a part is missing.
   *
   * @throws the error itself when it is no provider's failure but a defect of ours
   */
  note(error: unknown): GitProviderError {
    if (!(error instanceof GitProviderError)) {
      throw error;
    }
    this.found.add(error.code);
    return error;
  }

  codes(): ProviderErrorCode[] {
    return [...this.found];
  }
}
