import type {
  ForgeKind,
  GitCredential,
  NewChangeRequest,
  OpenedChangeRequest,
  ProviderAuth,
  ProviderCall,
  ProviderUser,
  ProviderWork,
  TokenCheck,
} from './git-provider.types.js';

/**
 * Port to a git host. Implementations translate only: they hold no user's state, take credentials per call,
 * and never call another host than the one the credentials name.
 */
export abstract class GitProvider {
  abstract readonly kind: ForgeKind;

  /**
   * Address of the server that credentials with this host reach. Equal texts of one `kind` are the same server, so that
   * work reached in two ways can be told to be the same.
   */
  abstract serverOf(host: string | null): string;

  /**
   * Reads the user's open change requests, assigned issues, recent repositories and their agent instructions.
   * Whatever part can be read is returned, with the reasons for missing parts in `gaps`.
   *
   * @throws GitProviderError when nothing at all could be read
   */
  abstract findWork(auth: ProviderAuth, call: ProviderCall): Promise<ProviderWork>;

  /** Asks the provider (one request) whether it accepts the token. Never throws for what the provider answers. */
  abstract checkToken(auth: ProviderAuth, call: ProviderCall): Promise<TokenCheck>;

  /**
   * The account behind the token.
   *
   * @throws GitProviderError when the provider does not answer with one
   */
  abstract getUser(auth: ProviderAuth, call: ProviderCall): Promise<ProviderUser>;

  /**
   * Opens a change request (pull or merge request). One that is open for the same branches already is answered as it is,
   * so that asking twice changes nothing.
   *
   * @throws GitProviderError with a `reason` when the provider refuses
   */
  abstract openChangeRequest(
    auth: ProviderAuth,
    request: NewChangeRequest,
    call: ProviderCall,
  ): Promise<OpenedChangeRequest>;

  /**
   * Address that git clones a repository from, without credentials.
   *
   * @param host as in {@link ProviderAuth}
   * @throws GitProviderError with a `reason` for a name that no repository has there
   */
  abstract cloneUrl(host: string | null, repository: string): string;

  /**
   * What git authenticates with at {@link cloneUrl}.
   *
   * @throws GitProviderError when the provider has to be asked and does not tell
   */
  abstract gitCredential(auth: ProviderAuth, call: ProviderCall): Promise<GitCredential>;

  /**
   * The token that tools call the provider's API with: the stored one, unless that stands for another.
   *
   * @throws GitProviderError when it has to be asked for and is not told
   */
  apiToken(auth: ProviderAuth, _call: ProviderCall): Promise<string> {
    return Promise.resolve(auth.token);
  }
}
