/** What an encrypted token is bound to: a record copied to another user or provider does not decrypt. */
export function providerTokenBinding(userId: string, provider: string): string {
  return `provider_tokens.token:${userId}:${provider}`;
}
