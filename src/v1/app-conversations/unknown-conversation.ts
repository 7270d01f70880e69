import { DomainError } from '../../common/errors/domain-error.js';

/** Also for other users' conversations: nobody learns that they exist. */
export function unknownConversation(): DomainError {
  return new DomainError('not_found', 'not_found', 'There is no conversation with this id.');
}
