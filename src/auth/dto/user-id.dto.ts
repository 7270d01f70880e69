import { Identifier } from '../../common/validation/identifier.decorator.js';

/** Path of `/api/v1/users/{id}`. */
export class UserIdDto {
  @Identifier({
    required: true,
    description: 'Id of the user.',
    example: '0b6f0a52-6a0f-4b2e-9d2a-1f6f0c1d2e3f',
  })
  id: string;
}
