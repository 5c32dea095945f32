//! A text as a point on the unit sphere.

use std::sync::Arc;

/// Why numbers are not an embedding.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EmbeddingError {
    /// No direction: all zero, or not finite.
    #[error("vector has no direction")]
    NoDirection,
}

/// A vector of unit length. Cosine similarity of two is their dot product.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedding(Arc<[f32]>);

impl Embedding {
    /// Scales a vector to unit length.
    pub fn new(mut vector: Vec<f32>) -> Result<Self, EmbeddingError> {
        let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        if !length.is_finite() || length <= f32::EPSILON {
            return Err(EmbeddingError::NoDirection);
        }
        for x in &mut vector {
            *x /= length;
        }
        Ok(Self(vector.into()))
    }

    /// Its coordinates.
    pub fn as_slice(&self) -> &[f32] {
        &self.0
    }

    /// How many coordinates it has.
    pub fn dimensions(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_without_direction_are_refused() {
        for vector in [
            vec![],
            vec![0.0; 3],
            vec![f32::NAN, 1.0],
            vec![f32::INFINITY],
        ] {
            assert_eq!(Embedding::new(vector), Err(EmbeddingError::NoDirection));
        }
        assert_eq!(
            Embedding::new(vec![3.0, 4.0]).unwrap().as_slice(),
            [0.6, 0.8]
        );
    }
}
