import { Identifier } from '../../common/validation/identifier.decorator.js';

/** Query of `GET /api/v1/api-keys`. */
export class KeyOwnerQueryDto {
  @Identifier({ description: 'Whose keys; administrators only. Without it: the caller.' })
  user_id?: string;
}
