/** What an encrypted custom secret is bound to: copied to another user or name it does not decrypt. */
export function customSecretBinding(userId: string, name: string): string {
  return `custom_secrets.value:${userId}:${name}`;
}
