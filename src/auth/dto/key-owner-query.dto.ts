import { Identifier } from '../../common/validation/identifier.decorator.js';

/** Query of `GET /api/v1/api-keys`. */
export class KeyOwnerQueryDto {
  @Identifier({
    description: 'Whose keys; administrators only. Without it: the caller.',
    example: '0b6f0a52-6a0f-4b2e-9d2a-1f6f0c1d2e3f',
  })
  user_id?: string;
}
